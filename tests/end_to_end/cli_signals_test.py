"""Exit codes and signals: a program under `xpu record` ends, is stopped and is interrupted as it is without."""
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import termios
import time
import unittest

from harness import BIN, XPU, EndToEndTest, environment, finish, null_driver, record_command, run, start

PATIENCE = 60

# Says "ready", counts signals, and at a line of input prints what it got and exits with 7.
COUNTING_PROGRAM = """
import os, signal, sys
counts = {}
def count(number, frame):
    name = signal.Signals(number).name
    counts[name] = counts.get(name, 0) + 1
    os.write(1, b"got %s\\n" % name.encode())
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGRTMIN"):
    signal.signal(getattr(signal, name), count)
os.write(1, b"ready %d\\n" % os.getpid())
sys.stdin.readline()
os.write(1, b"counts %s\\n" % repr(sorted(counts.items())).encode())
os._exit(7)
"""


def read_until(descriptor, wanted, seen=b""):
    """Reads until `wanted` has come and returns everything; fails after a while."""
    deadline = time.monotonic() + PATIENCE
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"{wanted!r} did not come; so far {seen!r}")
        try:
            block = os.read(descriptor, 4096)
        except OSError:
            block = b""
        if not block:
            raise AssertionError(f"the end came before {wanted!r}: {seen!r}")
        seen += block
    return seen


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.005)


class ExitCodeTest(EndToEndTest):
    def record(self, *command, **more):
        return run(record_command(self.folder / "run", list(command)), environment(), PATIENCE, **more)

    def test_the_programs_exit_code_is_kept(self):
        for code in (0, 1, 3, 77, 125, 126, 127, 255):
            finished = self.record("sh", "-c", f"exit {code}")
            self.assertEqual(finished.code, code, finished)
            self.assertTrue((self.folder / "run.xpu").exists())

    def test_a_program_that_is_not_found_is_127_and_leaves_nothing(self):
        for name in ("xpu-no-such-program", "./xpu-no-such-program"):
            finished = self.record(name, cwd=self.folder)
            self.assertEqual(finished.code, 127, finished)
            self.assertIn(name.encode(), finished.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_program_that_cannot_be_executed_is_126_and_leaves_nothing(self):
        plain_file = self.folder / "data"
        plain_file.write_text("text")
        plain_file.chmod(0o644)
        broken = self.folder / "broken"
        broken.write_bytes(b"\x7fELF but not really")
        broken.chmod(0o755)
        for name in (plain_file, self.folder, broken):
            finished = self.record(name)
            self.assertEqual(finished.code, 126, finished)
            self.assertIn(str(name).encode(), finished.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["broken", "data"])

    def test_a_program_that_is_not_found_does_not_replace_a_recording(self):
        self.assertEqual(self.record("true").code, 0)
        before = (self.folder / "run.xpu").read_bytes()
        self.assertEqual(self.record("xpu-no-such-program").code, 127)
        self.assertEqual((self.folder / "run.xpu").read_bytes(), before)

    def test_our_own_failures_are_125_and_the_program_does_not_start(self):
        marker = self.folder / "started"
        for options in (["--no-such-option"], ["--delay", "soon"], ["--max-live", "1X"], ["-o", ""], ["-o", "/proc/nowhere/a"],
                        ["--kernels", "("], ["--api", "--device-only"], ["--start-paused", "--delay", "1"]):
            finished = run([XPU, "record", *options, "--", "touch", marker], environment(), PATIENCE, cwd=self.folder)
            self.assertEqual(finished.code, 125, (options, finished))
            self.assertTrue(finished.stderr.startswith(b"xpu: "), finished)
            self.assertFalse(marker.exists(), options)
        self.assertEqual(run([XPU, "record"], environment(), PATIENCE).code, 125)
        self.assertEqual(run([XPU, "record", "--"], environment(), PATIENCE).code, 125)

    def test_a_program_that_a_signal_ends_ends_us_by_the_same_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR2):
            finished = self.record("sh", "-c", f"kill -{int(number)} $$",
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            self.assertEqual(finished.code, -number, finished)
            manifest = json.loads(run([XPU, "report", "--json", self.folder / "run"], environment(), PATIENCE).stdout)["program"]
            self.assertEqual(manifest["signal"], int(number))

    def test_we_leave_no_core_file_of_our_own(self):
        finished = self.record("sh", "-c", "ulimit -c 0; kill -ABRT $$", cwd=self.folder,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
        self.assertEqual(finished.code, -signal.SIGABRT, finished)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["run.xpu"])

    def test_a_shell_sees_what_it_would_see_without_us(self):
        script = 'trap "" PIPE; "$@" sh -c "kill -TERM \\$\\$"; echo "code $?"'
        plain = run(["bash", "-c", script, "bash", "env"], environment(), PATIENCE)
        traced = run(["bash", "-c", script, "bash", XPU, "record", "-o", self.folder / "run", "--"], environment(), PATIENCE)
        self.assertEqual(traced.stdout, plain.stdout)
        self.assertEqual(plain.stdout, b"code 143\n")

    def test_a_child_that_xpu_inherited_is_not_taken_for_the_program(self):
        script = f'sh -c "exit 9" & exec {XPU} record -o {self.folder}/run -- sh -c "exit 4"'
        self.assertEqual(run(["sh", "-c", script], environment(), PATIENCE).code, 4)

    def test_a_program_whose_child_lives_on_ends_the_recording(self):
        finished = self.record("sh", "-c", "sleep 30 >/dev/null 2>&1 </dev/null & exit 5")
        self.assertEqual(finished.code, 5, finished)
        self.assertFalse(finished.timed_out)


class InheritedTest(EndToEndTest):
    def assert_same(self, command, **more):
        plain = run(command, environment(), PATIENCE, **more)
        traced = run(record_command(self.folder / "run", command), environment(), PATIENCE, **more)
        self.assertEqual(plain.code, 0, plain)
        self.assertEqual(traced.code, 0, traced)
        self.assertEqual(traced.stdout, plain.stdout)
        return plain.stdout

    def test_the_program_gets_our_mask_and_dispositions(self):
        command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
        self.assert_same(command)

        def strange():
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGPIPE, signal.SIGTSTP})
        shown = self.assert_same(command, preexec_fn=strange, restore_signals=False)
        ignored = int(shown.split(b"SigIgn:")[1].split()[0], 16)
        self.assertTrue(ignored >> (signal.SIGCHLD - 1) & 1, "the test itself must hand over an ignored SIGCHLD")

    def test_the_program_gets_our_open_files_and_no_others(self):
        read_end, write_end = os.pipe()
        try:
            self.assert_same(["sh", "-c", "cd /proc/self/fd && echo *"], pass_fds=[read_end, write_end])
        finally:
            os.close(read_end)
            os.close(write_end)

    def test_the_program_gets_our_umask_limits_priority_and_folder(self):
        self.assert_same(["sh", "-c", "umask; ulimit -a; nice; pwd"], cwd=self.folder, preexec_fn=lambda: (os.umask(0o027), os.nice(3)))


class SentSignalTest(EndToEndTest):
    def start_counting(self, *options):
        process = start([XPU, "record", "-o", self.folder / "run", *options, "--", sys.executable, "-c", COUNTING_PROGRAM], environment(),
                        stdin=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        read_until(process.stdout.fileno(), b"\n")
        return process

    def end(self, process):
        process.stdin.write(b"\n")
        finished = finish(process, PATIENCE)
        self.assertFalse(finished.timed_out, finished)
        return finished

    def test_what_is_sent_to_us_reaches_the_program_once(self):
        process = self.start_counting()
        for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGRTMIN"):
            os.kill(process.pid, getattr(signal, name))
            read_until(process.stdout.fileno(), b"got " + name.encode() + b"\n")
        finished = self.end(process)
        self.assertEqual(finished.code, 7, finished)
        self.assertEqual(finished.stdout.count(b", 1)"), 7, finished)

    def test_a_signal_that_ends_the_program_ends_us_too_with_a_recording(self):
        process = start(record_command(self.folder / "run", ["sh", "-c", "echo ready; exec sleep 100"]), environment())
        read_until(process.stdout.fileno(), b"ready")
        process.send_signal(signal.SIGTERM)
        finished = finish(process, PATIENCE)
        self.assertEqual(finished.code, -signal.SIGTERM, finished)
        self.assertTrue((self.folder / "run.xpu").exists())
        self.assertFalse((self.folder / "run.xpu.live").exists())

    def test_a_program_that_signals_its_own_group_gets_no_echo(self):
        program = COUNTING_PROGRAM.replace("sys.stdin.readline()", "os.killpg(0, signal.SIGUSR1); sys.stdin.readline()", 1)
        process = start(record_command(self.folder / "run", [sys.executable, "-c", program]), environment(), stdin=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        read_until(process.stdout.fileno(), b"got SIGUSR1\n")
        # Pending signals are taken in the order of their numbers: what xpu makes of the first is done when the second one arrives.
        os.kill(process.pid, signal.SIGUSR2)
        read_until(process.stdout.fileno(), b"got SIGUSR2\n")
        self.assertIn(b"counts [('SIGUSR1', 1), ('SIGUSR2', 1)]", self.end(process).stdout)

    def test_the_resume_signal_is_ours_only_with_a_paused_start(self):
        process = self.start_counting("--start-paused")
        os.kill(process.pid, signal.SIGUSR2)
        os.kill(process.pid, signal.SIGUSR1)
        read_until(process.stdout.fileno(), b"got SIGUSR1\n")
        finished = self.end(process)
        self.assertIn(b"counts [('SIGUSR1', 1)]", finished.stdout)


class TerminalTest(EndToEndTest):
    """In a pseudo-terminal whose foreground group holds xpu and the program, as in a person's shell."""

    def start(self, command):
        """Returns (pid of xpu, terminal). xpu is the session's leader."""
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                os.execve(XPU, [str(part) for part in record_command(self.folder / "run", command)], environment())
            finally:
                os._exit(99)
        self.addCleanup(os.close, terminal)
        self.addCleanup(self.kill_session, pid)
        return pid, terminal

    @staticmethod
    def kill_session(pid):
        try:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def wait(self, pid):
        status = []

        def ended():
            done, value = os.waitpid(pid, os.WNOHANG)
            status.append(value)
            return done == pid
        wait_for(ended)
        return status[-1]

    def test_ctrl_c_reaches_the_program_once_and_the_recording_is_finished(self):
        pid, terminal = self.start([sys.executable, "-c", COUNTING_PROGRAM])
        seen = read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        seen = read_until(terminal, b"got SIGINT", seen)
        os.write(terminal, b"\n")
        seen = read_until(terminal, b"counts [('SIGINT', 1)]", seen)
        read_until(terminal, b"run.xpu", seen)
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 7)
        self.assertTrue((self.folder / "run.xpu").exists())

    def test_ctrl_c_that_ends_the_program_ends_us_with_a_recording(self):
        for key, number in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)):
            pid, terminal = self.start(["sh", "-c", "ulimit -c 0; echo ready; exec sleep 100"])
            read_until(terminal, b"ready")
            os.write(terminal, key)
            read_until(terminal, b"run.xpu")
            self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), -number)
            self.assertFalse((self.folder / "run.xpu.live").exists())

    def test_the_program_reads_the_terminal(self):
        pid, terminal = self.start(["sh", "-c", "read line; echo \"<$line>\"; test -t 0 && test -t 1 && test -t 2"])
        os.write(terminal, b"hello\n")
        read_until(terminal, b"<hello>")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)

    def shell_job(self, command):
        """A session with a shell's part of job control: xpu in a group of its own in the foreground. Returns (pid of xpu, terminal)."""
        terminal, far_end = pty.openpty()
        ours, theirs = os.pipe()
        shell = os.fork()
        if shell == 0:
            try:
                os.setsid()
                os.close(terminal)
                for descriptor in (0, 1, 2):
                    os.dup2(far_end, descriptor)
                os.close(os.open(os.ttyname(0), os.O_RDWR))  # makes it the controlling terminal
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                job = os.fork()
                if job == 0:
                    os.setpgid(0, 0)
                    os.tcsetpgrp(0, os.getpid())
                    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                    os.execve(XPU, [str(part) for part in record_command(self.folder / "run", command)], environment())
                while True:
                    _, status = os.waitpid(job, os.WUNTRACED | os.WCONTINUED)
                    os.write(theirs, f"{job} {status}\n".encode())
                    if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                        os._exit(0)
            finally:
                os._exit(99)
        os.close(far_end)
        os.close(theirs)
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, ours)
        self.addCleanup(self.kill_session, shell)
        return ours, terminal

    def test_ctrl_z_stops_us_with_the_program_and_both_go_on(self):
        for continue_both in (True, False):
            with self.subTest(continue_both=continue_both):
                ours, terminal = self.shell_job([sys.executable, "-c", COUNTING_PROGRAM])
                seen = read_until(terminal, b"ready ")
                seen = read_until(terminal, b"\n", seen[seen.index(b"ready "):])
                program = int(seen.split()[1])
                os.write(terminal, b"\x1a")
                job, status = map(int, read_until(ours, b"\n").split()[:2])
                self.addCleanup(self.kill_session, job)
                self.assertTrue(os.WIFSTOPPED(status), status)
                self.assertEqual(os.WSTOPSIG(status), signal.SIGTSTP)
                self.assertEqual(state_of(program), "T")
                # A shell continues the group; somebody else may continue xpu alone, and means the program.
                if continue_both:
                    os.killpg(job, signal.SIGCONT)
                else:
                    os.kill(job, signal.SIGCONT)
                wait_for(lambda: state_of(program) != "T")
                os.write(terminal, b"\n")
                seen = read_until(terminal, b"counts []")
                result = read_until(ours, b" 1792\n")  # exit code 7 as wait gives it
                self.assertIn(f"{job} 1792".encode(), result)

    def test_a_program_that_stops_itself_can_be_continued_by_whoever_did_it(self):
        process = start(record_command(self.folder / "run", ["sh", "-c", "echo $$; kill -STOP $$; exit 3"]), environment())
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        program = int(read_until(process.stdout.fileno(), b"\n"))
        wait_for(lambda: state_of(program) == "T")
        self.assertNotEqual(state_of(process.pid), "T")
        os.kill(program, signal.SIGCONT)
        self.assertEqual(finish(process, PATIENCE).code, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
