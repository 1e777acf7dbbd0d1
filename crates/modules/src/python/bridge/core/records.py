"""Tables with named fields, checked a little: what the models of the stand-in are made of."""

import copy
import json


class Record:
    """A model with fields and defaults. Unknown names are dropped, as the real models do."""

    fields = {}
    required = ()

    def __init__(self, **given):
        for name in self.required:
            if name not in given:
                raise ValueError(f"{type(self).__name__}: field `{name}` is required")
        for name, default in self.fields.items():
            value = given[name] if name in given else copy.copy(default)
            object.__setattr__(self, name, self.checked(name, value))
        self.model_post_init(None)

    def checked(self, name, value):
        return value

    def model_post_init(self, context):
        pass

    def __setattr__(self, name, value):
        object.__setattr__(self, name, self.checked(name, value) if name in self.fields else value)

    def model_dump(self, mode="python", exclude_none=False, exclude=None, include=None, **others):
        left_out = set(exclude or ())
        dumped = {}
        for name in self.fields:
            value = _dumped(getattr(self, name))
            if name in left_out or (include is not None and name not in include) or (exclude_none and value is None):
                continue
            dumped[name] = value
        return dumped

    dict = model_dump

    def model_dump_json(self, indent=None, **others):
        separators = None if indent else (",", ":")
        return json.dumps(self.model_dump(**others), ensure_ascii=False, indent=indent, separators=separators)

    def model_copy(self, *, update=None, deep=False):
        return type(self)(**{**self.model_dump(), **(update or {})})

    @classmethod
    def model_validate(cls, value):
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"{cls.__name__}: a table is needed")
        return cls(**value)

    def __eq__(self, other):
        return type(self) is type(other) and self.model_dump() == other.model_dump()

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"


def _dumped(value):
    if isinstance(value, Record):
        return value.model_dump()
    if isinstance(value, list):
        return [_dumped(each) for each in value]
    return value
