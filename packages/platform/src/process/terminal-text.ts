/** Control characters, those that turn the direction of what follows, and Unicode's own line ends */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Makes a text safe for a terminal. A name or an error of the database may be anybody's text, and the terminal would obey
 * its control characters, so they become question marks.
 *
 * @param kept those that belong to the text
 */
export function maskControls(text: string, kept = ''): string {
  return text.replaceAll(CONTROLS, (character) => (kept.includes(character) ? character : '?'));
}

/** JSON whose control characters are escaped, which means the same. JSON.stringify escapes only those that JSON demands. */
export function escapeControls(json: string): string {
  return json.replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
