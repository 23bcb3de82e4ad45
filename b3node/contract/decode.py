"""A request's bytes to a `Request`, or to one refusal that names the fault.

Order of judgement, so that a body always gets the same answer:

1. the body is not sound JSON, or not an object: `invalid_request` (see `strict_json`);
2. anything in it is refused by design: one `unsupported_parameter` for all of it (see `refused`);
3. a value has the wrong type, is out of range or missing: `invalid_request` for the first one, parameters in
   the order of `parameters.READ_ORDER`, items and tools by position; a tool choice without its tool counts as
   a wrong value;
4. the items do not fit together: an output without its call, too many images, nothing to answer.

Parameters that the contract accepts and ignores are still held to their types, then forgotten. Model names,
images' bytes and the meaning of schemas are judged elsewhere.
"""

from __future__ import annotations

from b3node.contract.fields import Fields
from b3node.contract.items import check_history
from b3node.contract.parameters import READ_ORDER, RequestFields
from b3node.contract.refused import refusal_of, survey
from b3node.contract.request import Request
from b3node.contract.strict_json import loads
from b3node.errors import Refusal


def decode_request(body: bytes) -> Request:
    """Returns the request that `body` holds, checked against the whole contract.

    Raises:
        Refusal: `invalid_request` or `unsupported_parameter`, with the path of the fault as `param`. Nothing
            else is raised, for any bytes.
    """
    document = loads(body)
    if not isinstance(document, dict):
        raise Refusal("invalid_request", "The request body must be a JSON object.")
    refused = survey(document)
    if refused:
        raise refusal_of(refused)
    request = _read_request(Fields(document))
    check_history(request.input)
    return request


def _read_request(request: Fields) -> Request:
    """Reads every parameter; unset ones get the defaults of `Request`."""
    read: RequestFields = {}
    for parameter in READ_ORDER:
        if parameter.is_required or request.get(parameter.name) is not None:
            read |= parameter.read(request, read)
    return Request(**{name: value for name, value in read.items() if value is not None})
