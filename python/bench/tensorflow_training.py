"""What a rank of `quotas.py` does, with TensorFlow: the script of a user, and a log of its iterations."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import time
from typing import Any

import rank_log
from cgroups import Group


def context() -> Any:
    """How ranks are started: forked from a server that has loaded the library and done nothing else."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tensorflow"])
    return made


def meeting(folder: str, ranks: int) -> list[str]:
    """Where ranks meet."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(ranks)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def dataset(samples: int, seed: int) -> Any:
    """Ten patterns under noise: learnable, and nothing to download."""
    import numpy as np

    draw = np.random.default_rng(seed)
    patterns = draw.standard_normal((10, 32, 32, 3), np.float32)
    labels = draw.integers(0, 10, samples, np.int32)
    return 0.25 * patterns[labels] + draw.standard_normal((samples, 32, 32, 3), np.float32), labels


def train(
    rank: int,
    ranks: int,
    group: Group | None,
    addresses: list[str],
    folder: str,
    balance: bool,
    args: argparse.Namespace,
    seed: int,
) -> None:
    """A rank of one training; writes rank-N.json into the folder."""
    import tensorflow as tf

    from cotenant.tensorflow import Balancer

    data = dataset(4096, seed)
    if group is not None:
        group.join()
    cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    os.environ.update(TF_CONFIG=json.dumps(cluster), COTENANT_JOB=f"bench-{balance}-{seed}")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(seed)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((32, 32, 3)),
                layers.Conv2D(args.width, 3, padding="same", activation="relu"),
                layers.MaxPool2D(2),
                layers.Conv2D(2 * args.width, 3, padding="same", activation="relu"),
                layers.AveragePooling2D(4),
                layers.Flatten(),
                layers.Dense(10),
            ]
        )
        optimizer = tf.keras.optimizers.SGD(0.05)
        optimizer.build(model.trainable_variables)
    optimizer, batches = Balancer.prepare(
        strategy, optimizer, data, global_batch=args.global_batch, balance=balance, seed=seed, predictor=args.predictor
    )
    balancer = batches.balancer

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def step(images: Any, labels: Any) -> Any:
        def replica(images: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
                loss = tf.reduce_mean(losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.run(replica, args=(images, labels))

    @tf.function  # type: ignore[untyped-decorator]
    def over_all(number: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(tf.identity, args=(number,)), axis=None)

    lines = []
    until = time.monotonic() + args.seconds
    done = False
    while not done:
        for images, labels in batches:
            loss = float(step(images, labels))
            lines.append((time.monotonic(), balancer.batch_size, loss, balancer.shares))
            # Time is over for all ranks when it is for rank 0, at the same iteration.
            if len(lines) % 4 == 0 or len(lines) >= args.iterations:
                over = rank == 0 and (len(lines) >= args.iterations or time.monotonic() > until)
                done = bool(over_all(tf.constant(float(over))).numpy())
                if done:
                    break
    rank_log.write(folder, rank, lines, balancer)
