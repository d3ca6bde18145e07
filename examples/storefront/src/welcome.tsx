import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { useAnnounce } from './announcer.js';
import { Brand } from './brand.js';
import { FieldError } from './field-errors.js';
import { KindIcon } from './illustration.js';
import { DRAWN_KINDS } from './vocabulary.js';

/** Why the shop was left: the key has never worked, or it has worked and does so no longer. */
export type KeyRefusal = 'unknown' | 'ended';

const REFUSALS = {
  unknown: 'The store does not know this key. Check that all of it was pasted, or ask for a new one.',
  ended:
    'This key has ended: it was revoked or replaced, or it has expired. Paste the new one, or ask whoever issued it.',
} as const satisfies Record<KeyRefusal, string>;
const EMPTY = 'Paste a key first.';
const MALFORMED = 'A key has letters, digits and underscores only: this is something else.';

/** Asks for the API key, once per tab. */
export function Welcome({
  refusal,
  onEnter,
}: {
  refusal: KeyRefusal | undefined;
  onEnter: (key: string) => void;
}) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | undefined>(refusal && REFUSALS[refusal]);
  const field = useRef<HTMLInputElement>(null);
  const announce = useAnnounce();
  const id = useId();

  useEffect(() => {
    // The element that had the focus was removed with the shop.
    field.current?.focus();
    if (refusal !== undefined) announce(REFUSALS[refusal]);
  }, [announce, refusal]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const entered = key.trim();
    if (/^\w+$/.test(entered)) return onEnter(entered);
    flushSync(() => setError(entered === '' ? EMPTY : MALFORMED));
    field.current?.focus();
  };

  return (
    <main className="welcome">
      <div className="welcome-card">
        <div className="parade" aria-hidden="true">
          {DRAWN_KINDS.map((kind) => (
            <span key={kind} data-kind={kind}>
              <KindIcon kind={kind} />
            </span>
          ))}
        </div>
        <Brand />
        <p className="lead">Who is asking? The catalogue opens with an API key.</p>
        <form className="key-form" noValidate onSubmit={submit}>
          <label htmlFor={id}>API key</label>
          <input
            ref={field}
            id={id}
            type="password"
            autoComplete="off"
            spellCheck="false"
            placeholder="as_test_…"
            value={key}
            onChange={({ target }) => setKey(target.value)}
            aria-invalid={error !== undefined}
            aria-describedby={error === undefined ? `${id}-hint` : `${id}-error ${id}-hint`}
          />
          <button type="submit" className="button">
            Open the store
          </button>
          <FieldError id={`${id}-error`} text={error} />
          <p className="hint" id={`${id}-hint`}>
            It stays in this tab and is gone when you close it. On your own machine the service prints one
            when it starts; <code>npm run storefront</code> prints an address that has it already.
          </p>
        </form>
      </div>
    </main>
  );
}
