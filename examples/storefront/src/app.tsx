import { useEffect, useState } from 'react';
import { Announcer } from './announcer.js';
import { forgetKey, keepKey, readKey } from './key.js';
import { Shop } from './shop.js';
import { type KeyRefusal, Welcome } from './welcome.js';

/** Shows the shop if this tab has a key that the service accepts; asks for a key otherwise. */
export function App() {
  const [key, setKey] = useState(readKey);
  const [refusal, setRefusal] = useState<KeyRefusal>();

  useEffect(() => {
    const readAgain = () => setKey(readKey());
    addEventListener('hashchange', readAgain);
    return () => removeEventListener('hashchange', readAgain);
  }, []);

  const enter = (entered: string) => {
    keepKey(entered);
    setRefusal(undefined);
    setKey(entered);
  };
  const leave = (reason?: KeyRefusal) => {
    forgetKey();
    setRefusal(reason);
    setKey(undefined);
  };

  return (
    <Announcer>
      {key === undefined ? (
        <Welcome refusal={refusal} onEnter={enter} />
      ) : (
        <Shop key={key} apiKey={key} onKeyRefused={leave} onLeave={() => leave()} />
      )}
    </Announcer>
  );
}
