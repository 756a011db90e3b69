package views

// NextLive is internal, for the tests in views_test.
var NextLive = nextLive
