package cli

// MainWith is Main with replaced external dependencies.
var MainWith = mainWith
