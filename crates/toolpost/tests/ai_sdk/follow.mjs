// Reads a session's calls as a `useChat` page does that resumes its stream: with the SDK's own transport and its own
// reader of messages. Prints the parts of the message, as JSON, when the stream is complete.
//
// Environment: AI (the package: ai5, ai6, ai7), URL, TOKEN. Standard error says `following` once the host has answered.

const { DefaultChatTransport, readUIMessageStream } = await import(process.env.AI);

const transport = new DefaultChatTransport({
  prepareReconnectToStreamRequest: () => ({
    api: process.env.URL,
    headers: { Authorization: `Bearer ${process.env.TOKEN}` },
  }),
});
const stream = await transport.reconnectToStream({ chatId: "calls" });
console.error("following");
let last;
const fail = (error) => {
  console.error("the SDK refused:", error);
  process.exit(1);
};
for await (const message of readUIMessageStream({ stream, terminateOnError: true, onError: fail })) {
  last = message;
}
console.log(JSON.stringify(last.parts));
