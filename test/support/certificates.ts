import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files in PEM. */
export interface Certificates {
  /** The certificate of the authority, which no system trusts by itself */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Whether certificates can be made; says so if not. With CI=true that is an error. */
export function canCreateCertificates(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    if (process.env.CI === 'true') throw new Error('CI needs openssl, which is not on PATH');
    process.stderr.write('Skipped tests that need certificates: openssl is not on PATH\n');
    return false;
  }
}

/** Makes a private certificate authority, and a certificate for `name` (and for no address) that it has signed. */
export function createCertificates(folder: string, name: string): Certificates {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-subj',
    '/CN=Test CA',
    '-days',
    '2',
  );
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${name}`);
  writeFileSync(join(folder, 'extensions'), `subjectAltName=DNS:${name}`);
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'extensions'];
  openssl('x509', '-req', '-in', 'server.csr', ...signed, '-out', 'server.pem', '-days', '2');
  const path = (file: string) => join(folder, file);
  return { ca: path('ca.pem'), cert: path('server.pem'), key: path('server.key') };
}
