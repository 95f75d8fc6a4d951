"""Runs an ONNX file: model path as argument, {"counts", "class"} as JSON on
stdin, {"ratio", "std"} as JSON on stdout."""

import json
import sys

import numpy
import onnxruntime

given = json.load(sys.stdin)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
ratio, std = session.run(
    ["ratio", "std"],
    {
        "counts": numpy.array(given["counts"], dtype=numpy.float32),
        "class": numpy.array(given["class"], dtype=numpy.int64),
    },
)
json.dump({"ratio": ratio.tolist(), "std": std.tolist()}, sys.stdout)
