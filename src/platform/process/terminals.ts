import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2];

/**
 * On exit, Node.js restores the settings of its terminals, and aborts with a core dump if one is gone. It skips closed file
 * descriptors, so those of lost terminals are closed before.
 */
export function passOverLostTerminals(): void {
  const terminals = STANDARD_STREAMS.filter(isatty);
  if (terminals.length === 0) return;
  process.on('exit', () => {
    for (const terminal of terminals) if (!isatty(terminal)) closeSync(terminal);
  });
}
