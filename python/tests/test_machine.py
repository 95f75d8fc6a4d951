import os
import tempfile
import unittest

from cotenant.machine import Machine


class Use(unittest.TestCase):
    def test_reads_shares_in_use(self) -> None:
        with tempfile.TemporaryDirectory() as proc:

            def write(name: str, text: str) -> None:
                with open(os.path.join(proc, name), "w") as f:
                    f.write(text)

            write("meminfo", "MemTotal:    1000 kB\nMemFree:  100 kB\nMemAvailable:  250 kB\nBuffers: 1 kB\n")
            write("stat", "cpu  100 0 50 1000 5 0 0 0 0 0\ncpu0 1 2 3\n")
            machine = Machine(proc)
            self.assertEqual(machine.use(10.0), (0.0, 0.75))
            ticks = os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
            write("stat", f"cpu  {100 + ticks // 2} 0 50 1000 5 0 0 0 0 0\ncpu0 1 2 3\n")
            self.assertEqual(machine.use(10.05), (0.0, 0.75), "asked again within half a second")
            cpu, memory = machine.use(11.0)
            self.assertAlmostEqual(cpu, 0.5, 2)
            write("stat", "nonsense")
            self.assertEqual(machine.use(12.0), (cpu, memory), "keeps what it read last")

    def test_no_proc(self) -> None:
        self.assertEqual(Machine("/nonexistent").use(), (0.0, 0.0))


if __name__ == "__main__":
    unittest.main()
