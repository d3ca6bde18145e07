import icon from '../icon.svg';

export function Brand() {
  return (
    <h1 className="brand">
      <img src={icon} alt="" width="36" height="36" /> Animal Store
    </h1>
  );
}
