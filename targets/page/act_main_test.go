package page

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopShared()
	os.Exit(code)
}
