/** What is wrong with a field, beside it: the field names it with `aria-describedby`. */
export function Fault({ id, text }: { id: string; text: string | undefined }) {
  return text === undefined ? null : (
    <p className="fault" id={id}>
      {text}
    </p>
  );
}
