"""A tool behind gRPC as somebody writes one with grpcio: a service that runs somewhere, or a module's own program that is
started with `--port`. What a call does, its argument `do` says. What happens to calls is told on standard output."""

import argparse
import concurrent.futures
import json
import os
import sys
import time

import grpc
import tool_service_pb2 as messages
import tool_service_pb2_grpc as services

SCHEMA = {"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}


def tell(*words):
    print(*words, flush=True)


class Lifecycle(services.ModuleLifecycleServicer):
    def __init__(self):
        self.config = None
        self.mounts = 0

    def Mount(self, request, context):
        self.mounts += 1
        self.config = dict(request.config)
        tell("mounted", request.module_id)
        return messages.MountResponse(success=True)

    def Cleanup(self, request, context):
        tell("cleaned")
        return messages.Empty()

    def HealthCheck(self, request, context):
        return messages.HealthCheckResponse(status=messages.HEALTH_STATUS_SERVING)


class Tool(services.ToolServiceServicer):
    def __init__(self, lifecycle):
        self.lifecycle = lifecycle

    def GetSpec(self, request, context):
        return messages.ToolSpec(name="worker", description="Does as told.", parameters_json=json.dumps(SCHEMA))

    def Execute(self, request, context):
        arguments = json.loads(request.input)
        return getattr(self, "do_" + arguments.pop("do"))(arguments, context)

    def done(self, output, **more):
        return messages.ToolExecuteResponse(success=True, output=json.dumps(output).encode(), **more)

    def do_echo(self, arguments, context):
        return self.done(arguments)

    def do_config(self, arguments, context):
        return self.done({"config": self.lifecycle.config, "mounts": self.lifecycle.mounts})

    def do_fail(self, arguments, context):
        return messages.ToolExecuteResponse(success=False, error="it cannot", output=b'{"tried": 2}')

    def do_image(self, arguments, context):
        image = messages.ImageBlock(media_type="image/png", data=b"\x89PNG")
        text = messages.TextBlock(text="a picture")
        blocks = [messages.ContentBlock(text_block=text), messages.ContentBlock(image_block=image)]
        return self.done("seen", content_blocks=blocks)

    def do_raise(self, arguments, context):
        raise AttributeError("'int' object has no attribute 'strip'")

    def do_abort(self, arguments, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not while it rains")

    def do_large(self, arguments, context):
        return self.done("x" * arguments["bytes"])

    def do_wait(self, arguments, context):
        context.add_callback(lambda: tell("left", "alone"))
        tell("waiting", "deadline" if context.time_remaining() < 3600 else "forever")
        while context.is_active():
            time.sleep(0.01)
        return self.done("nobody reads this")

    def do_about(self, arguments, context):
        return self.done({"pid": os.getpid(), "environment": sorted(os.environ)})

    def do_write(self, arguments, context):
        try:
            with open(arguments["path"], "w") as file:
                file.write("here")
        except OSError as error:
            return messages.ToolExecuteResponse(success=False, error=type(error).__name__)
        return self.done("written")

    def do_die(self, arguments, context):
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(arguments["code"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    lifecycle = Lifecycle()
    services.add_ModuleLifecycleServicer_to_server(lifecycle, server)
    services.add_ToolServiceServicer_to_server(Tool(lifecycle), server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    tell("noise before it is ready")
    tell(f"READY:{port}")
    server.wait_for_termination()


main()
