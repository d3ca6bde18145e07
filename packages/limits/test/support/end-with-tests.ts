import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

function endAll(): void {
  for (const child of running) {
    child.kill('SIGTERM');
    // A test may have suspended it.
    child.kill('SIGCONT');
  }
}

process.once('exit', endAll);
// Vitest's main process has gone, at a signal for example. This one would go on until its test reports something.
process.once('disconnect', () => {
  endAll();
  process.kill(process.pid, 'SIGTERM');
});

/** Ends a process of a test with the process that started it, if the test has not ended it. */
export function endWithTests(child: ChildProcess): void {
  running.add(child);
  child.once('exit', () => running.delete(child));
}
