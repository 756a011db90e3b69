package inspect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// message is JSON as a stream has it. Requests for the JSON alone get a part of the same bytes: what many ask for is encoded once,
// and copied by nobody. It does not change.
type message struct {
	event []byte // "event: NAME", "data: JSON", and an empty line
	json  []byte // part of event
}

// written is what writes its JSON itself, since it is long and reflection takes long. What it writes can be in a line of its own.
type written interface {
	appendJSON(buf []byte) []byte
}

// newMessage encodes v; like says how long it may be, nil if nobody knows. What is encoded here can be: there are only numbers that JSON has.
func newMessage(event string, v any, like *message) *message {
	buf := &bytes.Buffer{}
	if like != nil {
		buf.Grow(len(like.event) + len(like.event)/8)
	}
	buf.WriteString("event: " + event + "\ndata: ")
	begin := buf.Len()
	if w, ok := v.(written); ok {
		buf.Write(w.appendJSON(buf.AvailableBuffer()))
		buf.WriteByte('\n')
	} else if err := json.NewEncoder(buf).Encode(v); err != nil { // ends the line
		buf.Truncate(begin)
		_ = json.NewEncoder(buf).Encode(map[string]string{"Error": err.Error()})
	}
	buf.WriteByte('\n')
	all := buf.Bytes()
	return &message{all, all[begin : len(all)-2 : len(all)-2]}
}

// appendHead begins the JSON of what has long lists: the small rest of it, but for the brace at its end.
func appendHead(buf []byte, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(map[string]string{"Error": err.Error()})
	}
	return append(buf, data[:len(data)-1]...)
}

// appendList writes a list of the JSON of n values.
func appendList(buf []byte, n int, value func(buf []byte, i int) []byte) []byte {
	buf = append(buf, '[')
	for i := range n {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = value(buf, i)
	}
	return append(buf, ']')
}

// appendNumber writes a number that JSON has, as few digits of it as tell it from other float32 if it is one: most are.
func appendNumber(buf []byte, x float64) []byte {
	if float64(float32(x)) == x {
		return strconv.AppendFloat(buf, x, 'g', -1, 32)
	}
	return strconv.AppendFloat(buf, x, 'g', -1, 64)
}

// shortBytes is up to where net/http finds the length of an answer itself. It sends longer ones in chunks if it is not told, which
// takes more calls; to tell it always would cost the short ones more than that, for a header of nine lines takes a larger map.
const shortBytes = 2048

// answer sends the whole of an answer.
func answer(w http.ResponseWriter, kind string, data []byte) {
	h := w.Header()
	h["Content-Type"] = []string{kind}
	if len(data) > shortBytes {
		h["Content-Length"] = []string{strconv.Itoa(len(data))}
	}
	_, _ = w.Write(data) // a client that has gone is no failure
}

func answerJSON(w http.ResponseWriter, m *message) { answer(w, "application/json", m.json) }
