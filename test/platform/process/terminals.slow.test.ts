import { expect, test } from 'vitest';
import { runCommand } from '../../support/process.js';
import { hasProgram } from '../../support/programs.js';
import { createTemporaryFolder } from '../../support/temporary-folder.js';

/** Starts the service on a terminal of its own, takes that away without a SIGHUP, and ends it. */
const SCRIPT = `
import os, signal, subprocess, sys
terminal, end = os.openpty()
service = subprocess.Popen(sys.argv[1:], stdin=end, stdout=end, stderr=end, start_new_session=True)
os.close(end)
output = b''
while b'listening on' not in output: output += os.read(terminal, 4096)
os.close(terminal)
service.send_signal(signal.SIGTERM)
print('exit', service.wait())
`;

test.skipIf(!hasProgram('python3', '--version'))(
  'a service whose terminal is gone ends with 0 at SIGTERM',
  async () => {
    const environment = { PORT: '0', LOG_LEVEL: 'info', DATA_DIR: await createTemporaryFolder() };
    const program = runCommand('python3', ['-c', SCRIPT, process.execPath, 'dist/main.js'], environment);
    expect([await program.ended, program.output()]).toEqual([0, 'exit 0\n']);
  },
);
