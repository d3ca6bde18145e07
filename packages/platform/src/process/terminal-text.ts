/** Control characters, characters that change the direction of text, and Unicode's own line ends */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Makes a text safe for a terminal. A name or a database error may contain anybody's text, and the terminal would obey
 * its control characters. They become question marks.
 *
 * @param kept control characters that belong to the text
 */
export function maskControls(text: string, kept = ''): string {
  return text.replaceAll(CONTROLS, (character) => (kept.includes(character) ? character : '?'));
}

/** Escapes the control characters of JSON, whose value stays the same. JSON.stringify escapes only those that JSON demands. */
export function escapeControls(json: string): string {
  return json.replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
