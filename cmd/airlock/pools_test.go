package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	arenaPoolFile  = "../../pools/arena.pools.ron"
	arenaPoolTable = `Prefab    Cap  In-use  Free  Peak  Grow  Warm
Arrow      64       0    64     0  ×2    ✓
HitSpark   32       0    32     0  +16   ✓
Grunt      24       0    24     0  fix
`
)

// poolFile writes a file and returns its path.
func poolFile(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.pools.ron")
	require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
	return path
}

// typed makes a pipe standard input for the test, and returns its other end.
func typed(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdin := os.Stdin
	os.Stdin = r
	t.Cleanup(func() {
		os.Stdin = stdin
		w.Close()
		r.Close()
	})
	return w
}

func TestPoolsPrintsWhatAFileDeclares(t *testing.T) {
	code, stdout, stderr := command(t.Context(), "pools", arenaPoolFile)
	assert.Zero(t, code)
	assert.Equal(t, arenaPoolTable, stdout)
	assert.Empty(t, stderr)

	w := typed(t)
	_, err := w.WriteString("Pools([\n    Pool( prefab: \"Mine\", grow: Fixed, capacity: 0 ),\n])\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	code, stdout, stderr = command(t.Context(), "pools", arenaPoolFile, "-")
	assert.Zero(t, code)
	assert.Equal(t, arenaPoolFile+":\n"+arenaPoolTable+`
<stdin>:
Prefab  Cap  In-use  Free  Peak  Grow  Warm
Mine      0       0     0     0  fix         at its cap, 0 refused
`, stdout)
	assert.Empty(t, stderr)
}

func TestPoolsShowsWhatIsWrongWithEachFile(t *testing.T) {
	misspelt := poolFile(t, "Pools([\n\tPool( prefab: \"Arrow\", capcity: 64 ),\n])\n")
	cut := poolFile(t, "Pools([\n")
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	code, stdout, stderr := command(t.Context(), "pools", misspelt, nowhere, arenaPoolFile, filepath.Dir(cut), cut)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, arenaPoolFile+":\n"+arenaPoolTable, stdout)
	assert.Equal(t, misspelt+`:2:25: there is no field capcity: a Pool has prefab, capacity, grow, prewarm and max
	Pool( prefab: "Arrow", capcity: 64 ),
	                       ^
airlock: there is no file `+nowhere+`
airlock: `+filepath.Dir(cut)+` is a directory
`+cut+`:1:8: expected Pool, found the end of the file
Pools([
       ^
`, stderr)
}

func TestPoolsWithoutAFileIsAWrongCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"pools":                      "a pool file is missing",
		"pools --watch":              "--watch",
		"pools --watch= ":            "--watch needs the URL",
		"pools --watch ftp://a":      "--watch needs the URL",
		"pools --watch a b":          "leave out b",
		"pools --watch a --every 0s": "--every must be above zero",
		"pools --fast -":             "--fast",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr, args)
	}
}

func TestAnInterruptEndsPoolsThatWaitForInput(t *testing.T) {
	typed(t) // closed when the test is over, so that the reader ends too
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, stdout, stderr := command(ctx, "pools", "-")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "airlock: stopped while reading <stdin>\n", stderr)
}

func TestTheArenaTakesItsPoolsFromAFile(t *testing.T) {
	mine := poolFile(t, `Pools([ Pool( prefab: "Arrow", capacity: 7 ), Pool( prefab: "HitSpark", grow: Fixed ) ])`)
	code, stdout, stderr := command(t.Context(), "arena", "--for", "1200ms", "--port", "0", "--bots", "2", "--pools", mine)
	assert.Zero(t, code, stderr)
	assert.Regexp(t, `\| pools Arrow \d+/7 HitSpark 0/16\n`, stdout)
	t.Chdir(filepath.Join("..", "..")) // where the file is that nobody has to name
	code, stdout, stderr = command(t.Context(), "arena", "--for", "1200ms", "--port", "0", "--bots", "2")
	assert.Zero(t, code, stderr)
	assert.Regexp(t, `\| pools Arrow \d+/64 Grunt 0/24 HitSpark 0/32\n`, stdout)

	for file, want := range map[string]struct {
		code   int
		stderr string
	}{
		filepath.Join(t.TempDir(), "nowhere"): {exitUsage, `^airlock: there is no pool file [^\n]+\n$`},
		t.TempDir():                           {exitUsage, `^airlock: the pool file [^\n]+ is no regular file\n$`},
		"":                                    {exitUsage, `^airlock: --pools needs the name of a file\n$`},
		poolFile(t, "Pools([\n Poool()\n"):    {exitFailed, `^[^\n]+some\.pools\.ron:2:2: [^\n]+\n Poool\(\)\n \^\n$`},
	} {
		code, stdout, stderr = command(t.Context(), "arena", "--port", "0", "--pools", file)
		assert.Equal(t, want.code, code, file)
		assert.Empty(t, stdout, file)
		assert.Regexp(t, want.stderr, stderr, file)
	}
}
