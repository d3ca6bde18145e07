import { readFileSync } from 'node:fs';
import { type Environment, type Program, runCommand, until } from '@animal-store/platform/testing';

/** What `npm run release:check` has built: an image as a folder, and its configuration. */
export interface Image {
  /** Its root file system */
  readonly root: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly WorkingDir: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Healthcheck: { readonly Test: readonly string[] };
    readonly StopSignal: NodeJS.Signals;
  };
}

/** The image under test; undefined when these tests do not run as part of `npm run release:check`. */
export function findImage(): Image | undefined {
  const { IMAGE_ROOT, IMAGE_CONFIG } = process.env;
  if (!IMAGE_ROOT || !IMAGE_CONFIG) return undefined;
  return { root: IMAGE_ROOT, config: JSON.parse(readFileSync(IMAGE_CONFIG, 'utf8')) };
}

/** A command in a container, as its process 1. */
export interface Container extends Program {
  /** Sends process 1 a signal, as a container engine does: from outside of its PID namespace. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

/**
 * Runs a command of the image the way an engine with `--read-only --security-opt no-new-privileges` does, on the
 * network of this machine: in mount, PID, IPC and UTS namespaces of its own, as the image's user, with nothing
 * writable. Needs root.
 */
export function runContainer(
  { root, config }: Image,
  args: readonly string[],
  environment: Environment,
): Container {
  const variables = Object.entries(environment).map((variable) => variable.join('='));
  const inside = ['env', '-i', '-C', config.WorkingDir, ...config.Env, ...variables, ...args];
  const program = runCommand(
    'unshare',
    [
      ...['--mount', '--pid', '--ipc', '--uts', '--fork', '--'],
      ...['sh', '-euc', ENTER, 'container', root, config.User, ...inside],
    ],
    {},
  );
  return {
    ...program,
    async kill(signal) {
      process.kill(await until(() => childOf(program.child.pid)), signal);
    },
  };
}

const ENTER = `
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec="$user" "$root" "$@"
`;

function childOf(pid: number | undefined): number | undefined {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return child ? Number(child) : undefined;
}
