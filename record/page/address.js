// What is chosen on the page, as the fragment of its address: a link leads to a module, an action, colours or an order.
//
// `#what-if` alone is a part of the page, `#module=a.o&colour=time` a choice.

const chosen = new URLSearchParams();

/** Takes the choices of the address, if it has some; a function for each of them is called with its value. */
export function follow(names) {
  const apply = () => {
    const fragment = location.hash.slice(1);
    if (!fragment.includes("=")) return;
    const wanted = new URLSearchParams(fragment);
    for (const [name, value] of wanted) chosen.set(name, value);
    for (const [name, value] of wanted) if (Object.hasOwn(names, name)) names[name](value);
  };
  addEventListener("hashchange", apply);
  apply();
}

/** Keeps a choice in the address; the page's history gets no entry. */
export function keep(name, value) {
  chosen.set(name, value);
  history.replaceState(null, "", `#${String(chosen).replaceAll("%2F", "/")}`);
}

/** The address of a module. */
export const toModule = (name) => `#${new URLSearchParams({ module: name })}`;
