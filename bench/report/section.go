package report

import (
	"bytes"
	"errors"
)

// What is between these lines of a document belongs to Section.
const (
	begin = "<!-- bench-compare: begin -->\n"
	end   = "<!-- bench-compare: end -->\n"
)

// ErrMarkers says that a document has one marker without the other, or two of a kind.
var ErrMarkers = errors.New("report: markers do not match")

// Section puts text between the two markers of a document. One without markers gets a section at its end.
//
// Errors: ErrMarkers.
func Section(document []byte, text string) ([]byte, error) {
	i, j := bytes.Index(document, []byte(begin)), bytes.Index(document, []byte(end))
	switch {
	case bytes.Count(document, []byte(begin)) > 1 || bytes.Count(document, []byte(end)) > 1:
		return nil, ErrMarkers
	case i < 0 && j < 0:
		return bytes.Join([][]byte{bytes.TrimRight(document, "\n"), []byte("\n\n## Side by side\n\n" + begin + text + end)}, nil), nil
	case i < 0 || j < i:
		return nil, ErrMarkers
	}
	return bytes.Join([][]byte{document[:i+len(begin)], []byte(text), document[j:]}, nil), nil
}
