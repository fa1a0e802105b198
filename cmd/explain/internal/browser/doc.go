// Package browser holds the tests of explain's pages in a browser: their numbers, their drawings, hostile names,
// windows of every width. They skip if there is no Chromium.
package browser
