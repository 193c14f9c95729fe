"""A byte-level tokenizer made at start, without any download.

Every byte is a token, so every text can be spelt; a few hundred merges are learnt from the short
text below, always the same ones. The model's weights are random, so it could emit any byte: the
tokens that it may generate are those that are plain ASCII text on their own (and the end token).
Thus a token's text never depends on its neighbours, and a client can count what it is sent.
"""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 512
END_OF_TEXT = "<|endoftext|>"
TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"

# our own sentences; only the frequency of their letter groups matters
_TEXT = """
A mixture of experts holds many small networks in every layer and asks only a few of them for each token.
The router looks at the hidden state, gives every expert a score, and the experts with the highest scores answer.
Most of the weights rest while a token passes, but any of them may be wanted by the next one, so all of them must be
near. When the memory of the accelerator is too small for that, some experts stay in the memory of the host and their
weights travel over the link whenever they are called. The time of a step is then the time of that journey.
What decides the speed is which experts are kept close: if the traffic is uneven, a good choice serves most of the
calls from fast memory, and a poor one leaves the machine waiting. A measurement says which of the two it is.
The first token waits for the whole prompt, the later tokens come one after the other, each from one pass through the
layers. Several streams share a pass, and so the server makes more tokens in a second although each stream gets fewer.
We write down the question, the machine, the command, the numbers and the spread, and we keep the failures too.
Numbers: 0 1 2 3 4 5 6 7 8 9 10 16 32 64 100 128 256 512 1000 1024 2048 4096.
def main(values): return sum(value * value for value in values if value is not None)
"""


class MiniTokenizer:
    """Text to token ids and back; see the module's text for what may be generated."""

    def __init__(self) -> None:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=VOCAB_SIZE,
            min_frequency=1,  # enough pairs for the whole vocabulary
            special_tokens=[END_OF_TEXT, TURN_START, TURN_END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator([_TEXT], trainer)
        self._tokenizer = tokenizer
        self.size = int(tokenizer.get_vocab_size())
        self.end_id = tokenizer.get_vocab()[END_OF_TEXT]
        self.texts = [self.decode([token]) for token in range(self.size)]
        self.printable = [token for token in range(3, self.size) if _is_plain(self.texts[token])]

    def encode(self, text: str) -> list[int]:
        """The token ids of a text; lone surrogates, which have no UTF-8, count as U+FFFD."""
        clean = text.encode("utf-8", "replace").decode("utf-8") if _has_surrogate(text) else text
        return list(self._tokenizer.encode(clean, add_special_tokens=False).ids)

    def decode(self, tokens: list[int]) -> str:
        """The text of token ids; special tokens have none, broken UTF-8 becomes U+FFFD."""
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))

    def pieces(self, tokens: list[int]) -> list[str]:
        """Each token as the vocabulary spells it."""
        return [str(self._tokenizer.id_to_token(token)) for token in tokens]

    def encode_chat(self, messages: list[tuple[str, str]], add_generation_prompt: bool = True) -> list[int]:
        """A conversation of (role, content), each turn between its marks, then the assistant's open turn."""
        text = "".join(f"{TURN_START}{role}\n{content}{TURN_END}\n" for role, content in messages)
        return self.encode(text + (f"{TURN_START}assistant\n" if add_generation_prompt else ""))


def _is_plain(text: str) -> bool:
    return bool(text) and all(" " <= letter <= "~" or letter == "\n" for letter in text)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
