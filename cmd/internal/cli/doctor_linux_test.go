package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doctor looks at this machine, which has what the tests need.
func TestDoctor(t *testing.T) {
	got := command(t, nil, "", "doctor", "--json", "--state", filepath.Join(t.TempDir(), "not", "yet"))
	var rows []row
	if err := json.Unmarshal([]byte(got.out), &rows); err != nil {
		t.Fatalf("%v: %q", err, got.out)
	}
	if len(rows) != 6 {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
	for _, r := range rows {
		if r.Verdict == rowBad {
			t.Errorf("%+v", r)
		}
		if r.Verdict != rowOK && r.Do == "" {
			t.Errorf("%s is %s and there is no way out", r.Name, r.Verdict)
		}
	}
	if got.code != exitOK {
		t.Errorf("exit %d", got.code)
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	got := command(t, nil, "", "doctor", "--browser", "/nonexistent/chromium")
	if got.code != exitOther {
		t.Errorf("exit %d without a browser: %s", got.code, got.out)
	}
	broken := filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := checkBrowser(t.Context(), broken); r.Verdict != rowBad || r.Do == "" {
		t.Errorf("a browser that does not run: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := checkState(filepath.Join(file, "state")); r.Verdict != rowBad {
		t.Errorf("a state directory below a file: %+v", r)
	}
	if r := checkState("/proc/nowhere"); r.Verdict != rowBad {
		t.Errorf("a state directory that cannot be made: %+v", r)
	}
}
