# Runs one piece of code for the host: reads it from the socket that is standard input, calls tools over it, and says
# how the code ended. What the code prints goes to standard output.
def _main():
    import ast, json, linecache, os, socket, struct, sys, threading, traceback

    SCRIPT, FRAME, VALUE, TEXT = "code.py", 5 << 20, 1 << 20, 64 << 10
    AWAITS = 0x80  # inspect.CO_COROUTINE; the module costs more than all the others together
    wire = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    # In the order it was written, and before the process may be killed.
    sys.stdout.reconfigure(line_buffering=True, errors="replace")
    turn, last = threading.Lock(), [0]

    def take(size):
        data = bytearray()
        while len(data) < size:
            piece = wire.recv(size - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return data

    def receive():
        return json.loads(take(struct.unpack(">I", take(4))[0]))

    def send(report):
        data = json.dumps(report, ensure_ascii=False, allow_nan=False).encode()
        if len(data) > FRAME:
            raise ValueError(f"{len(data)} bytes are too much for one call, the limit is {FRAME}")
        wire.sendall(struct.pack(">I", len(data)) + data)

    def cut(text):
        data = text.encode("utf-8", "replace")
        if len(data) <= TEXT:
            return data.decode()
        return data[:TEXT].decode("utf-8", "ignore") + f"… [{len(data) - TEXT} more bytes]"

    def sayable(value):
        # Larger numbers would arrive rounded.
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ValueError("a whole number beyond 64 bits")
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
            sayable(part)
        return value

    errors = {
        kind.__name__: kind
        for kind in (PermissionError, FileNotFoundError, TimeoutError, TypeError, ValueError, RuntimeError)
    }

    class Aborted(BaseException):
        pass

    Aborted.__module__, Aborted.__qualname__ = "builtins", "RuntimeError"

    def function(name):
        def call(*positional, **keywords):
            with turn:
                last[0] += 1
                sayable([positional, keywords])
                send({"call": {"id": last[0], "function": {"named": name}, "positional": positional,
                               "keywords": keywords}})
                answer = receive()["answer"]["answer"]
            if answer == "unknown":
                raise NameError(f"name '{name}' is not defined")
            if "raise" in answer:
                raise errors[answer["raise"]["kind"]](answer["raise"]["message"])
            if "abort" in answer:
                raise Aborted(answer["abort"]["message"])
            return answer["value"]

        async def later(*positional, **keywords):
            return call(*positional, **keywords)

        call.__name__ = call.__qualname__ = name
        return call, later

    def ended(ending):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception:
            pass
        with turn:
            send({"ended": {"ending": ending, "unprinted": 0, "worn": False}})
        os._exit(0)

    def raised(error):
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != SCRIPT:
            trace = trace.tb_next
        places = [place.lineno for place in traceback.extract_tb(trace) if place.filename == SCRIPT]
        if isinstance(error, SyntaxError) and error.filename == SCRIPT:
            places.append(error.lineno)
        text = "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")
        kind = "RuntimeError" if isinstance(error, Aborted) else type(error).__name__
        message = cut(str(error))
        ended({"raised": {"kind": kind, "message": message, "traceback": cut(text), "line": places[-1] if places else None}})

    send("ready")
    order = receive()["run"]
    code = order["code"]
    linecache.cache[SCRIPT] = (len(code), None, code.splitlines(True), SCRIPT)
    scope = {"__name__": "__main__", "__builtins__": __builtins__}
    for name in order.get("functions", ()):
        scope[name], scope[name + "_async"] = function(name)
    scope.update(order["inputs"])

    def evaluate(tree, mode):
        made = compile(tree, SCRIPT, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        value = eval(made, scope)
        if not made.co_flags & AWAITS:
            return value
        import asyncio

        loops.extend([] if loops else [asyncio.new_event_loop()])
        return loops[0].run_until_complete(value)

    loops = []
    try:
        tree = ast.parse(code, SCRIPT)
        last_value = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last_value = ast.Expression(tree.body.pop().value)
        evaluate(tree, "exec")
        value = evaluate(last_value, "eval") if last_value else None
        shown = repr(value)
    except SystemExit as error:
        if error.code not in (None, 0):
            raised(error)
        value, shown = None, "None"
    except BaseException as error:
        raised(error)

    plain = lambda value: list(value) if isinstance(value, (set, frozenset)) else json.JSONEncoder().default(value)
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain).encode()
        sent, why = (sayable(json.loads(data)), None) if len(data) <= VALUE else (None, f"it takes more than {VALUE} bytes as JSON")
    except Exception as error:
        sent, why = None, cut(str(error))
    ending = {"json": sent, "repr": cut(shown)}
    if why is not None:
        ending["not_json"] = why
    ended({"value": ending})


_main()
