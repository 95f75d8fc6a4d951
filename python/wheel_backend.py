"""Builds the wheel, with the Go program in it; needs Go and nothing else.

As a program (what ``make wheel`` runs)::

    python3 python/wheel_backend.py --out bin [--platform linux/arm64] [--binary FILE]

and as the build backend of ``pip install ./python`` and ``pip wheel ./python``
(PEP 517). The program is linked without C, so one wheel serves every Linux of
an architecture. The same source gives the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import pathlib
import platform
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent

#: Platform tags by GOOS/GOARCH.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/arm64": "macosx_11_0_arm64",
    "darwin/amd64": "macosx_11_0_x86_64",
    "windows/amd64": "win_amd64",
}


def host() -> str:
    """GOOS/GOARCH of this machine."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{'windows' if sys.platform == 'win32' else sys.platform}/{machine}"


def build_program(target: str, into: pathlib.Path) -> pathlib.Path:
    """Builds the Go program for a platform."""
    goos, goarch = target.split("/")
    program = into / ("cotenant.exe" if goos == "windows" else "cotenant")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch}
    command = [os.environ.get("GO", "go"), "build", "-trimpath", "-ldflags=-s -w", "-o", str(program), "./cmd/cotenant"]
    subprocess.run(command, cwd=HERE.parent, env=environment, check=True)
    return program


def metadata(project: dict[str, Any]) -> str:
    """METADATA of the wheel, from pyproject.toml."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {r} ; extra == "{extra}"' for r in requirements]
    return "\n".join(lines) + "\n"


def build(out: pathlib.Path, target: str, binary: pathlib.Path | None = None) -> pathlib.Path:
    """Writes the wheel into a folder; returns its path."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    name, version, tag = project["name"], project["version"], f"py3-none-{TAGS[target]}"
    info = f"{name}-{version}.dist-info"
    scripts = "".join(f"{k} = {v}\n" for k, v in project["scripts"].items())
    with tempfile.TemporaryDirectory() as folder:
        program = binary or build_program(target, pathlib.Path(folder))
        files: dict[str, bytes] = {
            str(path.relative_to(HERE).as_posix()): path.read_bytes()
            for path in sorted((HERE / name).rglob("*"))
            if path.is_file() and (path.suffix == ".py" or path.name == "py.typed")
        }
        files[f"{name}/bin/cotenant{'.exe' if target.startswith('windows') else ''}"] = program.read_bytes()
    tags = "".join(f"Tag: py3-none-{t}\n" for t in TAGS[target].split("."))
    files[f"{info}/METADATA"] = metadata(project).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cotenant\nRoot-Is-Purelib: false\n{tags}".encode()
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    files[f"{info}/LICENSE"] = (HERE.parent / "LICENSE").read_bytes()
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(content)])
    rows.writerow([f"{info}/RECORD", "", ""])
    files[f"{info}/RECORD"] = record.getvalue().encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            mode = 0o755 if "/bin/" in path else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """PEP 517. COTENANT_BINARY names a program that is built already."""
    given = os.environ.get("COTENANT_BINARY")
    return build(pathlib.Path(wheel_directory), host(), pathlib.Path(given) if given else None).name


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="builds the wheel of the package cotenant")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bin"))
    parser.add_argument("--platform", choices=sorted(TAGS), default=host())
    parser.add_argument("--binary", type=pathlib.Path, help="the Go program, where it is built already")
    args = parser.parse_args()
    print(build(args.out, args.platform, args.binary))


if __name__ == "__main__":
    main()
