package cli

// MainWith is Main in a world that a test has changed.
var MainWith = mainWith
