//go:build !linux

package cli

import "context"

const onlyLinux = "Pages are driven on Linux only so far; on this system the command line can speak to a daemon elsewhere"

func checkBrowser(context.Context, string) row { return row{"browser", rowBad, onlyLinux, ""} }

func checkSandbox(context.Context, row) row { return row{"sandbox", rowBad, onlyLinux, ""} }

func checkShm() row { return row{"shm", rowNote, "not looked at on this system", ""} }

func checkFonts(context.Context) row {
	return row{"fonts", rowNote, "not looked at on this system", ""}
}

func checkState(dir string) row { return row{"state", rowNote, dir, ""} }
