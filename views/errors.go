package views

import "errors"

// ErrForeign reports a token that opens another registry than the one the query was made for.
// It is a panic's value, as all misuse of a token in a loop is.
var ErrForeign = errors.New("views: token of another registry")
