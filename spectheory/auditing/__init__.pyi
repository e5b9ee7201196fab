from .subjects.sampler_verifiers import from_loop as from_loop
from .subjects.sampler_verifiers import from_sampler as from_sampler
from .verdicts.audit_certificate import AuditCertificate as AuditCertificate
from .verdicts.sampler_audit import audit as audit
