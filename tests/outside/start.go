// Starts a program without a libc.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	said, err := exec.Command(os.Args[1], os.Args[2:]...).CombinedOutput()
	fmt.Println(string(said), err)
}
