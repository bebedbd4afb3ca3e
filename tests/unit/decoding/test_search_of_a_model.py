import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.search import beam_search
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.tiny import tiny_codec, tiny_model


def test_a_search_of_a_model_reports_the_log_probs_of_forced_decoding() -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    cpu = torch.device("cpu")
    lines = ["a b c d", "h", "g f e a b c d a a", "c c"]
    with torch.inference_mode():
        memory = model.encode(pack_sequences([codec.encode_source(line) for line in lines], cpu))
        longest = torch.tensor([9, 5, 14, 2])
        found = beam_search(model.step, model.start(memory), longest, SearchConfig(beam=3))
        for rank in range(min(map(len, found))):
            chosen = [hypotheses[rank] for hypotheses in found]
            inputs = pack_sequences([(BOS_ID, *h.ids[:-1]) for h in chosen], cpu)
            log_probs = model.logits(model.decode(inputs, memory)).log_softmax(-1)
            ids = torch.tensor([token for h in chosen for token in h.ids])
            each = log_probs.gather(1, ids[:, None]).squeeze(1).split([len(h.ids) for h in chosen])
            sums = [float(part.sum()) for part in each]
            # Both are float32, summed in another order over at most 14 tokens.
            assert [h.log_prob for h in chosen] == pytest.approx(sums, abs=1e-4)
    assert all(h.ids[-1] == EOS_ID for hypotheses in found for h in hypotheses)
