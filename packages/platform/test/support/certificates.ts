import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasProgram } from '@animal-store/limits/testing';

/** Files in PEM. */
export interface Certificates {
  /** The certificate of the authority, which no system trusts by itself */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const canCreateCertificates = () => hasProgram('openssl', 'version');

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes a private certificate authority, and a certificate for `name` (and for no address) that it has signed. */
export function createCertificates(folder: string, name: string): Certificates {
  const ca = ['-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=Test CA', '-days', '2'];
  openssl(folder, 'req', '-x509', ...NEW_KEY, ...ca);
  return issueCertificate(folder, name);
}

/** Makes a further certificate, of the authority in the folder. With negative `days` it has expired. */
export function issueCertificate(folder: string, name: string, file = 'server', days = 2): Certificates {
  const [key, request, cert] = [`${file}.key`, `${file}.csr`, `${file}.pem`];
  openssl(folder, 'req', ...NEW_KEY, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
  writeFileSync(join(folder, 'extensions'), `subjectAltName=DNS:${name}`);
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'extensions'];
  openssl(folder, 'x509', '-req', '-in', request, ...signed, '-out', cert, '-days', String(days));
  return { ca: join(folder, 'ca.pem'), cert: join(folder, cert), key: join(folder, key) };
}

function openssl(folder: string, ...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
}
