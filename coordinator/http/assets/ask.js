// Asks the API, and turns its refusals into errors with its own words and the status.

// Returns an answer that is good, or throws what the farm says is wrong.
export async function checked(answer) {
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => null);
  const error = new Error(said?.detail ?? `the farm answers ${answer.status}`);
  error.status = answer.status;
  throw error;
}

// What the farm says to a request, as JSON.
export async function ask(method, path, body) {
  const sent = body === undefined ? {} : {
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return (await checked(await fetch(`/api/v1${path}`, { method, ...sent }))).json();
}
