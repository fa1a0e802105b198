package evidence

// Readers is for tests of what names every kind of evidence.
var Readers = readers
