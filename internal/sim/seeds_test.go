package sim_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/sim"
)

func TestASeedThatIsSavedIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seeds.txt")
	seeds, err := sim.ReadSeeds(path)
	require.NoError(t, err)
	require.Empty(t, seeds)
	require.NoError(t, os.WriteFile(path, []byte("# seeds that failed once\n\n7\n"), 0o644))
	require.NoError(t, sim.SaveSeed(path, math.MaxUint64, errors.New("lost\nwith details")))
	seeds, err = sim.ReadSeeds(path)
	require.NoError(t, err)
	require.Equal(t, []uint64{7, math.MaxUint64}, seeds)

	require.NoError(t, sim.SaveSeed(path, 8, errors.New("why")))
	require.NoError(t, os.WriteFile(path, []byte("seven"), 0o644))
	_, err = sim.ReadSeeds(path)
	require.Error(t, err)
	require.Error(t, sim.SaveSeed(t.TempDir(), 1, errors.New("a folder is no file")))
	_, err = sim.ReadSeeds(t.TempDir())
	require.Error(t, err)
}
