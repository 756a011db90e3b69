package registry
import "os"
var dbg = os.Getenv("SEED") != ""
