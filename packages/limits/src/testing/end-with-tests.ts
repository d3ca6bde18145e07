import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

function endAll(): void {
  for (const child of running) {
    child.kill('SIGTERM');
    // A test may have suspended it.
    child.kill('SIGCONT');
  }
}

/** The runner's main process has gone, at a signal for example. This one would go on until its test reports something. */
function endWithRunner(): void {
  endAll();
  process.kill(process.pid, 'SIGTERM');
}

/** Ends a process of a test with the process that started it, if the test has not ended it. */
export function endWithTests(child: ChildProcess): void {
  if (running.size === 0) process.once('exit', endAll).once('disconnect', endWithRunner);
  running.add(child);
  child.once('exit', () => {
    running.delete(child);
    if (running.size === 0) process.off('exit', endAll).off('disconnect', endWithRunner);
  });
}
