"""A cursor over tokens with the few questions a recursive-descent parser asks."""

from __future__ import annotations

from tilec.runtime.emulator.errors import PtxError
from tilec.runtime.emulator.reading.tokens import Loc, Statement, Token, number


class TokenStream:
    """Tokens and a position. Every read past the end or of the wrong token raises PtxError."""

    def __init__(self, tokens: list[Token | Statement | Loc]) -> None:
        last = tokens[-1].line if tokens else 1
        self._end = Token("end", "end of text", last)
        self._count = len(tokens)
        self.tokens = [*tokens, *[self._end] * 4]  # looking ahead needs no bounds check
        self.position = 0

    def at_end(self) -> bool:
        return self.position >= self._count

    def peek(self, ahead: int = 0) -> Token | Statement | Loc:
        return self.tokens[self.position + ahead]

    def next(self) -> Token | Statement | Loc:
        token = self.tokens[self.position]
        if token is self._end:
            raise PtxError("the text ends inside a statement", token.line)
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        if self.tokens[self.position].text == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> Token | Statement | Loc:
        token = self.next()
        if token.text != text:
            raise PtxError(f"expected `{text}`, found `{token.text}`", token.line)
        return token

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.next()
        value = number(token.text) if token.kind == "number" else None
        if not isinstance(value, int):
            raise PtxError(f"expected an integer, found `{token.text}`", token.line)
        return -value if negative else value

    def skip_past(self, text: str) -> None:
        while self.next().text != text:
            pass

    def skip_block(self) -> None:
        """Move past the `}` that closes a block whose `{` was just read."""
        depth = 1
        for position in range(self.position, self._count):
            text = self.tokens[position][1]
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                if not depth:
                    self.position = position + 1
                    return
        raise PtxError("the text ends inside a block", self._end.line)
