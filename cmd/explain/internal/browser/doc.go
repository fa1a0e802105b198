// Package browser holds the tests of the pages that explain writes, as a browser shows them: their numbers, their
// drawings, names that try to be more than names, windows of every width. They skip if there is no Chromium.
package browser
