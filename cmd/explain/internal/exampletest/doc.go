// Package exampletest holds the tests of what runs explain from outside: action.yml as steps and in whole workflows,
// and the scripts and workflows of examples/.
package exampletest
