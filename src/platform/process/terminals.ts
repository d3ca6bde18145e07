import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2];

/**
 * At its end Node.js puts the settings of its terminals back, and aborts with a core dump where one is gone. It passes over
 * a file descriptor that is closed, so those of lost terminals are closed before.
 */
export function passOverLostTerminals(): void {
  const terminals = STANDARD_STREAMS.filter(isatty);
  if (terminals.length === 0) return;
  process.on('exit', () => {
    for (const terminal of terminals) if (!isatty(terminal)) closeSync(terminal);
  });
}
