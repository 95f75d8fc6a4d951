"""``python -m cotenant ...`` (and ``cotenant ...``) runs the Go command line."""

import subprocess
import sys

from cotenant.coordinator import binary


def main() -> int:
    """Runs the binary with this process's arguments; its exit code is ours."""
    return subprocess.call([binary(), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
