"""Compares docs/tool_service.proto, compiled into the file named first, with what amplifier-core ships: whatever is in
ours must be in theirs, with the same numbers and types."""

import sys

from amplifier_core._grpc_gen import amplifier_module_pb2
from google.protobuf import descriptor_pb2


def load(path):
    files = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as file:
        files.ParseFromString(file.read())
    return files.file[0]


def fields(message):
    return {field.name: (field.number, field.type, field.label, field.type_name) for field in message.field}


def missing(ours, theirs):
    if ours.package != theirs.package:
        yield f"package {ours.package}, not {theirs.package}"
    messages = {message.name: message for message in theirs.message_type}
    for message in ours.message_type:
        known = fields(messages[message.name])
        for name, field in fields(message).items():
            if known.get(name) != field:
                yield f"{message.name}.{name}: {field}, not {known.get(name)}"
    values = {enum.name: {value.name: value.number for value in enum.value} for enum in theirs.enum_type}
    for enum in ours.enum_type:
        if values[enum.name] != {value.name: value.number for value in enum.value}:
            yield f"enum {enum.name}"
    services = {service.name: service for service in theirs.service}
    for service in ours.service:
        known = {method.name: (method.input_type, method.output_type) for method in services[service.name].method}
        for method in service.method:
            if known.get(method.name) != (method.input_type, method.output_type):
                yield f"{service.name}.{method.name}"


def main():
    theirs = descriptor_pb2.FileDescriptorProto()
    amplifier_module_pb2.DESCRIPTOR.CopyToProto(theirs)
    found = list(missing(load(sys.argv[1]), theirs))
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(1 if found else 0)


main()
