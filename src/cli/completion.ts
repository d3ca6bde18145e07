import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * A script for Bash and Zsh that defines the command `animal-store`, for use in any folder, and completes its commands,
 * options and choices. It is written once, because starting Node.js takes too long for each press of a key, and it never
 * evaluates what was typed.
 */
export function toCompletionScript(program: Command): string {
  const name = program.name();
  const cases = listCases(program, `${name} `).map(
    ([line, words]) => `    ${line}) words='${words.join(' ')}' ;;\n`,
  );
  return `${name}() { (cd ${quote(ROOT)} && exec ${quote(process.execPath)} dist/cli/program.js "$@"); }
_${name}() {
  local IFS=$' \\n' words
  case "\${COMP_WORDS[*]:0:$COMP_CWORD} " in
${cases.join('')}  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
if [ -n "$ZSH_VERSION" ]; then autoload -U compinit bashcompinit && compinit && bashcompinit; fi
complete -F _${name} ${name}
`;
}

/** Patterns of what is in front of the cursor, the most specific first, and the words that may follow. */
function listCases(
  command: Command,
  before: string,
): (readonly [pattern: string, words: readonly string[]])[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command);
  const commands = help.visibleCommands(command);
  return [
    ...commands.flatMap((each) => listCases(each, `${before}${each.name()} `)),
    ...options
      .filter(({ required }) => required)
      .map(({ long, argChoices = [] }) => [`${quote(before.trimEnd())}*' ${long} '`, argChoices] as const),
    [
      `${quote(before)}*`,
      [...commands.map((each) => each.name()), ...options.flatMap(({ long }) => long ?? [])],
    ],
  ];
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
