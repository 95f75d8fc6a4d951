"""Trains a small net in several processes that need not be equally fast.

    pip install --no-deps bin/cotenant-*.whl
    python3 examples/tensorflow_train.py --workers 2 --epochs 2 --quotas 1,0.4

With --workers it starts itself that often on this machine, and with --quotas
(as root) each in a cgroup with so much of a core. On several machines, start it
once on each, with TF_CONFIG, as any script of MultiWorkerMirroredStrategy.

The two lines about cotenant are all that makes it balanced. Killed, and started
again with the same --checkpoint, it goes on where it was. --equal trains with
equal batches, to compare.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def dataset(samples: int) -> tuple[Any, Any]:
    """Ten patterns under noise."""
    import numpy as np

    draw = np.random.RandomState(1)
    patterns = draw.standard_normal((10, 16, 16, 3))
    labels = draw.randint(0, 10, samples)
    images = 0.25 * patterns[labels] + draw.standard_normal((samples, 16, 16, 3))
    return images.astype("float32"), labels.astype("int32")


def train(args: argparse.Namespace) -> None:
    """Trains as one of the workers that TF_CONFIG names; the first prints the loss of each epoch."""
    import tensorflow as tf

    from cotenant.tensorflow import Balancer

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [
                tf.keras.Input((16, 16, 3)),
                layers.Conv2D(args.width, 3, padding="same", activation="relu"),
                layers.Conv2D(args.width, 3, padding="same", activation="relu"),
                layers.AveragePooling2D(4),
                layers.Flatten(),
                layers.Dense(10),
            ]
        )
        optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
        optimizer.build(model.trainable_variables)

    optimizer, batches = Balancer.prepare(
        strategy, optimizer, dataset(args.samples), global_batch=args.global_batch, balance=not args.equal
    )

    # A graph for batches of any size, not one for each size.
    @tf.function(reduce_retracing=True)
    def step(images: Any, labels: Any) -> Any:
        def replica(images: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
                loss = tf.reduce_mean(losses)  # over this process's samples
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.run(replica, args=(images, labels))

    @tf.function
    def over_all(numbers: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(tf.identity, args=(numbers,)), axis=None)

    rank = batches.balancer.rank
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, batches=batches)
    manager = None
    if args.checkpoint:
        # Every process writes, as the strategy wants it, and reads the first one's.
        manager = tf.train.CheckpointManager(checkpoint, os.path.join(args.checkpoint, f"worker-{rank}"), max_to_keep=1)
        checkpoint.restore(tf.train.latest_checkpoint(os.path.join(args.checkpoint, "worker-0")))
    for epoch in range(batches.state_dict()["epoch"], args.epochs):
        total, begun = [0.0, 0.0], time.monotonic()
        for images, labels in batches:
            loss = float(step(images, labels))
            # batch_size is 0 where a process has no samples and works on a stand-in.
            size = batches.balancer.batch_size
            total = [total[0] + size * loss if size else total[0], total[1] + size]
        loss, count = over_all(tf.constant(total)).numpy().tolist()
        if rank == 0:
            print(
                f"epoch {epoch}: loss {loss / count:.4f} over {count:.0f} samples in {time.monotonic() - begun:.1f} s, "
                f"batch sizes {batches.balancer.shares}",
                flush=True,
            )
        if manager is not None:
            manager.save()


def start(args: argparse.Namespace) -> int:
    """Starts the workers on this machine, and waits for them; when one fails, the others end."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(args.workers)]
    workers = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    quotas = [float(q) for q in args.quotas.split(",")] if args.quotas else []
    groups: list[Any] = []
    started: list[subprocess.Popen[bytes]] = []
    try:
        if quotas:
            if len(quotas) != args.workers:
                raise SystemExit(f"--quotas {args.quotas}: want one for each of {args.workers} workers")
            sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python" / "bench"))
            from cgroups import Group

            for rank, cores in enumerate(quotas):
                groups.append(Group(f"cotenant-example-{os.getpid()}-{rank}"))
                groups[-1].limit(cores)
        for rank in range(args.workers):
            task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
            join = groups[rank].join if groups else None
            started.append(subprocess.Popen([sys.executable, *sys.argv], env=environment, preexec_fn=join))
        while all(p.poll() in (None, 0) for p in started) and any(p.poll() is None for p in started):
            time.sleep(0.05)
        return next((p.returncode for p in started if p.returncode), 0)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for group in groups:
            group.close()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="trains a small net in several processes")
    parser.add_argument("--workers", type=int, default=0, help="start so many processes on this machine")
    parser.add_argument("--quotas", default="", help="with --workers: cores of each, such as 1,0.4; as root")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--global-batch", type=int, default=64, help="samples of all processes in an iteration")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--equal", action="store_true", help="equal batches, to compare")
    args = parser.parse_args()
    if args.workers and "TF_CONFIG" not in os.environ:
        return start(args)
    train(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
