"""Balances the load of data-parallel training: no worker waits for a straggler.

Each rank keeps its own batch size, fitted to how fast it has lately been; the
global batch size, and with it the update, stays what it was. No framework is
imported here:

- :mod:`cotenant.torch` for PyTorch, two lines in a script;
- :mod:`cotenant.tensorflow` for TensorFlow, custom loops;
- :mod:`cotenant.flower` for Flower: a strategy that sizes each client's work;
- ``python -m cotenant.doctor script.py``: would this script gain?

The coordinator that decides is a Go program. The wheel carries it; rank 0
starts it where ``COTENANT_ADDRESS`` names no other.
"""

__version__ = "0.1.0"
