import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../run-tool.js';

/** A stand-in for the base image, which some networks block: Debian, with Node.js and npm from npm. */
const DEBIAN = 'bookworm';
const NODE = `node-linux-${process.arch}@24`;
const NPM = 'npm@11';
/** Works in containers, too, where overlay file systems and namespaces may not. */
const ENVIRONMENT = { BUILDAH_ISOLATION: 'chroot' };
const IMAGE = 'animal-store';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Builds the Dockerfile on a stand-in for its base image, and prints the size of the result.
 *
 * @returns the image's root file system and the path of its configuration, both in the folder
 */
export function buildImage(folder) {
  const storage = [
    '--storage-driver',
    'vfs',
    '--root',
    join(folder, 'storage'),
    '--runroot',
    join(folder, 'run'),
  ];
  const buildah = (...args) => run('buildah', [...storage, ...args], { environment: ENVIRONMENT });
  const ask = (...args) => execFileSync('buildah', [...storage, ...args], { encoding: 'utf8' }).trim();

  const [, base] = /^ARG NODE_IMAGE=([^\s@]+)/m.exec(readFileSync('Dockerfile', 'utf8'));
  // Local images have the host `localhost`, with which buildah does not look elsewhere.
  const standIn = `localhost/${base}`;
  createBaseImage(standIn, { buildah, ask });
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const secret = join(folder, 'npmrc');
  writeFileSync(secret, describeRegistry(), { mode: 0o600 });
  const options = ['--pull-never', '--format=docker', `--tag=${IMAGE}`, `--secret=id=npmrc,src=${secret}`];
  const versions = [`--build-arg=NODE_IMAGE=${standIn}`, `--build-arg=VERSION=${version}`];
  buildah('build', ...options, ...versions, '.');

  const container = ask('from', '--pull-never', IMAGE);
  const root = ask('mount', container);
  const config = join(folder, 'config.json');
  const { Docker } = JSON.parse(ask('inspect', '--type', 'image', IMAGE));
  writeFileSync(config, JSON.stringify(Docker.config));
  process.stdout.write(`The image adds ${megabytes(join(root, 'app'))} MB to its base\n`);
  return { root, config };
}

function createBaseImage(name, { buildah, ask }) {
  const container = ask('from', 'scratch');
  const root = ask('mount', container);
  run('debootstrap', ['--variant=minbase', DEBIAN, root], { stdio: ['ignore', 'ignore', 'inherit'] });
  run('npm', ['install', '--silent', '--global', '--prefix', join(root, 'usr/local'), NODE, NPM]);
  buildah('config', '--env', `PATH=${PATH}`, container);
  buildah('commit', '--quiet', '--rm', container, name);
}

/** The registry of this machine, with the authority of its certificate. */
function describeRegistry() {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  const authority = process.env.NODE_EXTRA_CA_CERTS;
  const ca = authority ? `ca=${JSON.stringify(readFileSync(authority, 'utf8'))}\n` : '';
  return `registry=${registry}\n${ca}`;
}

function megabytes(path) {
  const [kilobytes] = execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t');
  return Math.round(Number(kilobytes) / 1024);
}
