"""Read PTX as LLVM, nvcc and Triton print it into `Module` records (PTX ISA chapters 4, 5, 11)."""

from __future__ import annotations

from tilec.runtime.emulator.errors import PtxError
from tilec.runtime.emulator.reading.body_parser import BodyParser
from tilec.runtime.emulator.reading.instruction import Entry, Module
from tilec.runtime.emulator.reading.token_stream import TokenStream
from tilec.runtime.emulator.reading.tokens import Loc, Statement, Token, tokenize
from tilec.runtime.emulator.reading.variable_parser import parse_parameter, parse_variable

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SPACES = {".global", ".const", ".shared"}
_TUNING = {
    ".reqntid", ".maxntid", ".maxnreg", ".minnctapersm", ".maxnctapersm", ".reqnctapercluster",
    ".maxclusterrank",
}  # fmt: skip


def parse_module(text: str) -> Module:
    """The module of one PTX text. Raises PtxError naming the line of what cannot be read."""
    return _ModuleParser(TokenStream(tokenize(text))).parse()


class _ModuleParser:
    def __init__(self, stream: TokenStream) -> None:
        self.stream = stream
        self.module = Module("", "", {}, {})
        self.files: dict[int, str] = {}

    def parse(self) -> Module:
        bodies: list[tuple[Entry, int]] = []
        while not self.stream.at_end():
            self._directive(bodies)
        for entry, start in bodies:  # .file may come after the code that .loc points from
            self.stream.position = start
            BodyParser(self.stream, entry, self.module.variables, self.files).parse()
        return self.module

    def _directive(self, bodies: list[tuple[Entry, int]]) -> None:
        stream = self.stream
        while stream.peek().text in _LINKAGE:
            stream.next()
        token = stream.next()
        if token.text in _SPACES:
            variable = parse_variable(stream, token.text[1:])
            self.module.variables[variable.name] = variable
        elif token.text == ".func":
            self._function(token.line)
        elif token.text == ".entry":
            bodies.append(self._entry(token.line))
        else:
            self._header(token)

    def _header(self, token: Token | Statement | Loc) -> None:
        stream = self.stream
        if token.text == ".version":
            self.module.version = stream.next().text
        elif token.text == ".target":
            self.module.target = stream.next().text
            while stream.accept(","):
                stream.next()
        elif token.text == ".address_size":
            if stream.next().text != "64":
                raise PtxError("only .address_size 64 is supported", token.line)
        elif token.text == ".file":
            self._file()
        elif token.text == ".pragma":
            stream.skip_past(";")
        else:
            raise PtxError(f"unexpected `{token.text}` at module level", token.line)

    def _file(self) -> None:
        index = self.stream.integer()
        self.files[index] = self.stream.next().text.strip('"')
        while self.stream.accept(","):
            self.stream.next()

    def _function(self, line: int) -> None:
        """Declarations (vprintf, __assertfail) are skipped: the call knows them by name."""
        stream = self.stream
        while stream.peek().text not in (";", "{"):
            stream.next()
        if stream.next().text == "{":
            raise PtxError("device functions with a body are unsupported; inline them", line)

    def _entry(self, line: int) -> tuple[Entry, int]:
        stream = self.stream
        entry = Entry(stream.next().text)
        if stream.accept("("):
            while not stream.accept(")"):
                entry.parameters.append(parse_parameter(stream))
                stream.accept(",")
        while (token := stream.next()).text != "{":
            if token.text in _TUNING:
                values = [stream.integer()]
                while stream.accept(","):
                    values.append(stream.integer())
                entry.directives[token.text[1:]] = tuple(values)
            elif token.text in (".explicitcluster", ".noreturn"):
                entry.directives[token.text[1:]] = ()
            elif token.text == ".pragma":
                stream.skip_past(";")
            else:
                raise PtxError(f"unsupported: entry directive `{token.text}`", token.line)
        if entry.name in self.module.entries:
            raise PtxError(f"entry {entry.name} is defined twice", line)
        self.module.entries[entry.name] = entry
        start = stream.position
        stream.skip_block()
        return entry, start
