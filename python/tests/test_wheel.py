import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

PYTHON = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "#!/bin/sh\necho the program says $*\n"


class Wheel(unittest.TestCase):
    def test_installs_and_runs_what_it_carries(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            program = here / "program"
            program.write_text(PROGRAM)

            def build(out: str) -> pathlib.Path:
                command = [sys.executable, str(PYTHON / "wheel_backend.py"), "--binary", str(program), "--out", out]
                return pathlib.Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())

            wheel, again = build(str(here / "a")), build(str(here / "b"))
            self.assertEqual(wheel.read_bytes(), again.read_bytes(), "the same source gives the same bytes")
            names = zipfile.ZipFile(wheel).namelist()
            self.assertIn("cotenant/torch/balancer.py", names)
            self.assertIn("cotenant/py.typed", names)
            self.assertFalse([n for n in names if "test" in n or "__pycache__" in n])
            venv.create(here / "venv", with_pip=False)
            python = here / "venv" / "bin" / "python3"
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("COTENANT_", "PYTHON"))}
            install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
            subprocess.run([*install, "--no-index", str(wheel)], check=True, env=environment)
            for command in ([str(python), "-m", "cotenant"], [str(here / "venv" / "bin" / "cotenant")]):
                said = subprocess.run([*command, "plan", "jobs"], check=True, capture_output=True, text=True, env=environment)
                self.assertEqual(said.stdout, "the program says plan jobs\n")


if __name__ == "__main__":
    unittest.main()
